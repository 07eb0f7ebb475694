"""The live page of a controller: what it shows, how that reaches browsers, and who may see it."""
