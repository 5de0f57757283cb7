"""Who may say yes to what the judge will not decide."""
