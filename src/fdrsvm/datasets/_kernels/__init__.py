"""Compiled inner loops of the data sets: numbers and arrays in, nothing checked.

hydraulics  fluid, orifices and valves: a value and its slope
pressures   the pump's eight pressures at the end of a step, by Newton
drive       crank, friction, motor and speed controller
pump        the time loop
kurtosis    spectral kurtosis of records
deal        whose turn it is when rows are dealt to clients by shares
"""
