"""The folder in which all is kept: that it is its owner's alone, and the small files in it."""
