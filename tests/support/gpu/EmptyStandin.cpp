// A library that is there and has none of the functions: see README.md.

extern "C" int hearthStandinWithoutFunctions() {
    return 0;
}
