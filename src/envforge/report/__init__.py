"""Pure renderers: a result becomes JSON, text for the screen, or a line of progress. Nothing here looks or acts."""
