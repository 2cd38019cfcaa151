# Makes a project of a Python module in Rust; building it needs cargo, which no wheel brings.
maturin new --bindings pyo3 trial >log 2>&1
find trial -type f -not -path '*/.git/*' | sort
grep -c 'crate-type' trial/Cargo.toml
