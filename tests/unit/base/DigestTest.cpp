#include <catch2/catch.hpp>

#include "base/Digest.h"

namespace hearth {

TEST_CASE("digests are those of the standards", "[unit][base]") {
    CHECK(toHex(sha256("abc")) ==
          "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(toHex(hmacSha256("Jefe", "what do ya want for nothing?")) ==
          "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST_CASE("a digest of pieces is that of the whole", "[unit][base]") {
    RunningDigest pieces;
    CHECK(RunningDigest().hex() == toHex(sha256("")));
    for (const char* piece : {"a", "", "bc"}) pieces.add(piece);
    CHECK(pieces.hex() == toHex(sha256("abc")));
    RunningDigest longer(RunningDigest::Kind::Sha512);
    longer.add("abc");
    CHECK(longer.hex() ==
          "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
          "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f");
    CHECK(rawBytes(sha256("abc")).substr(0, 2) == "\xba\x78");
}

}  // namespace hearth
