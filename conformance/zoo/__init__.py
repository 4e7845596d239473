"""The zoo: wrong implementations made of right ones, to see what the kit finds.

Faults are made from outside, by rewriting syntax trees and loading the result beside the shipped modules. Shipped
code outside this room carries no fault and no switch for one, and what is loaded here never replaces it.
"""
