"""The exploration of classic groups: instances to search, and what is checked in them. No run on a target."""
