"""What every group has, whatever its protocol: offsets, transactions, retention, listing, description and deletion.

Pure functions on the world of one group id. Who is a member and may commit, what a description shows and what keeps an
offset are questions (`GroupProtocol`) that a protocol answers by functions of its own. Membership itself, sessions and
rebalances never belong here, and no module here imports a protocol.
"""
