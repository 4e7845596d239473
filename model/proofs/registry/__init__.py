"""Every theorem of every protocol with its scope, and the results that people read."""
