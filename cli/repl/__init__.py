"""The interactive prompt: one owner of the terminal, requests in a queue, answers to what is asked."""
