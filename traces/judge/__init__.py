"""The judge: compares the responses in a trace with those the model allows, one group at a time.

A trace goes in; out comes the rule behind every accepted response and, for a rejected one, what the model would have
allowed, the guard that was false, and the requirement with its source. The model is called, never repeated here.

`search`, `diagnosis` and `groups` are engines and know no protocol; they see one as a `Stepper` and a `JudgedProtocol`.
`classic` is the protocol of consumer groups. What judges a whole trace lies here, above all of them.
"""
