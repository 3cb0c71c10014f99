"""Shades of figures: ink on paper, and the one colour, which is people's."""

INK, SOFT, BAR, PALE, GRID, WASH = 1.0, 0.72, 0.42, 0.22, 0.12, 0.06
"""Shades: marks; second text; intervals; what may be chance; lines, and areas behind them."""

ORANGE, BELOW, ABOVE = "#a83c0e", "#762a83", "#1b7837"
"""Colours: people; numbers below and above 0 (PRGn: told apart with every colour blindness)."""

PEOPLE = (ORANGE, 1.0)
