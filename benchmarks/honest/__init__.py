"""Problems with solutions known in high precision, and what the library says about them; see ``honesty.py``."""
