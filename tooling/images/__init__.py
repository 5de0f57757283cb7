"""Images for models: recognize, check, scale and store them."""
