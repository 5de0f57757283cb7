"""Parse and judge bash: from a text to the simple commands it runs."""
