// A library that exists but has none of the functions: see README.md.

extern "C" int hearthStandinWithoutFunctions() {
    return 0;
}
