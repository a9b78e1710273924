"""A customer's id as your backend signs it for the page that it makes for them."""

import hashlib
import hmac
import time


def signed_customer(customer: str, secret: str) -> str:
    text = f"{customer}|{int(time.time()) + 3600}"
    return f"{text}|{hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()}"
