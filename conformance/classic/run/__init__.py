"""The exploration of classic groups: instances to search, and the properties checked in them. No run on a target."""
