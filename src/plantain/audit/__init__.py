"""How far a judge can be trusted: its card, from controls, planted defects and repeats; and judging anything again."""
