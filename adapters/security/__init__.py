"""TLS and SASL: how a connection to a broker is encrypted, and how it proves who it is.

`settings` reads what a profile says, `loading` makes of it what connections need, reading files and secrets. `sasl` and
`authentication` are pure: they yield messages and are sent what came back. Sockets are not opened here, and secrets are
neither shown nor recorded.
"""
