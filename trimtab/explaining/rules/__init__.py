"""A sentence for each rule by which a round refuses, skips or repairs, or people hold a bundle.

What a strategy compared is in `trimtab.explaining.accounts`.
"""
