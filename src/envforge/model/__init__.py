"""The words of envforge: frozen values that every other room speaks, importing nothing of ours."""
