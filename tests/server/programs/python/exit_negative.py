# A negative status is taken modulo 256.
raise SystemExit(-2)
