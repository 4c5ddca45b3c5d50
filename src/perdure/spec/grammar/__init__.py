"""Value grammars: what one value may look like, each in one place."""
