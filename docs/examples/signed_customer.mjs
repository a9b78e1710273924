// A customer's id as your backend signs it for the page that it makes for them.

import { createHmac } from "node:crypto";

export function signedCustomer(customer, secret) {
  const text = `${customer}|${Math.floor(Date.now() / 1000) + 3600}`;
  return `${text}|${createHmac("sha256", secret).update(text).digest("hex")}`;
}
