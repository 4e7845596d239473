"""Messages that authenticate a connection: SASL (KIP-152), with sessions that end (KIP-368).

`fencepost.model.wire.schema` explains the notation.
"""

TABLE = """
api SaslHandshake 17, versions 0-1
  request
    mechanism  string
  response
    error_code  int16
    mechanisms  []string

api SaslAuthenticate 36, versions 0-2, flexible 2+
  request
    auth_bytes  bytes
  response
    error_code           int16
    error_message        string?
    auth_bytes           bytes
    session_lifetime_ms  int64    1+
"""
