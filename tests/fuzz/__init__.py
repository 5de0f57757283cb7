"""Fuzz targets for everything that reads bytes from elsewhere."""
