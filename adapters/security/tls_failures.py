"""What a failed TLS handshake means to the user."""

import ssl

from fencepost.adapters.security.loading import Security

EXPIRED, NOT_YET_VALID = 10, 9
WRONG_NAMES = frozenset({62, 64})
"""Codes of OpenSSL for a certificate that is valid for other names or addresses."""
REFUSALS = ("BAD_CERTIFICATE", "CERTIFICATE_UNKNOWN", "CERTIFICATE_EXPIRED", "UNKNOWN_CA", "ACCESS_DENIED")
"""Ends of the names of alerts that a broker sends for a certificate."""


def describe_tls_failure(security: Security, host: str, error: OSError) -> tuple[str, str] | None:
    """Reason and advice for what ended a connection that uses TLS; None if TLS has nothing to do with it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _describe_verification(security.server_name or host, error)
    if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
        return _describe_alert(security, error.reason or "")
    if isinstance(error, (ConnectionResetError, ConnectionAbortedError, BrokenPipeError, ssl.SSLEOFError)):
        return ("the target closed the connection during the TLS handshake", "is this its TLS port?")
    return None


def _describe_verification(host: str, error: ssl.SSLCertVerificationError) -> tuple[str, str]:
    if error.verify_code == EXPIRED:
        return ("its certificate has expired", "renew it")
    if error.verify_code == NOT_YET_VALID:
        return ("its certificate is not valid yet", "check the clocks")
    if error.verify_code in WRONG_NAMES:
        advice = "give its name as [security] server_name, or write verify_hostname = false"
        return (f"its certificate is not for {host!r}", advice)
    reason = f"its certificate is not trusted ({error.verify_message})"
    return (reason, "give the certificate of its authority as [security] ca_file")


def _describe_alert(security: Security, reason: str) -> tuple[str, str]:
    if "WRONG_VERSION_NUMBER" in reason or "RECORD_LAYER" in reason:
        return ("it does not speak TLS", "use its TLS port, or write kafka:// and leave out tls")
    demanded = ("it demands a client certificate", "give certificate_file and key_file in [security]")
    if reason.endswith("CERTIFICATE_REQUIRED"):
        return demanded
    if reason.endswith(REFUSALS):
        refused = "it refuses the client certificate"
        return (refused, "check [security] certificate_file") if security.has_certificate else demanded
    if reason.endswith("HANDSHAKE_FAILURE") and not security.has_certificate:
        return ("it ended the TLS handshake", "it may demand a client certificate: certificate_file in [security]")
    alert = reason.replace("_", " ").lower() or "no reason given"
    return (f"the TLS handshake failed ({alert})", "check the TLS versions and ciphers of the broker")
