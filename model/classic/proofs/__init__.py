"""The proof of the classic protocol by induction: arbitrary states, every event, counterexamples as plain values."""
