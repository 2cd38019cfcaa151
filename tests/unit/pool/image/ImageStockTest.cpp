#include "pool/image/ImageStock.h"
#include "tests/unit/pool/image/Scratch.h"

using namespace hearth::pool::image;

TEST_CASE("a store's images count with the bytes of their layouts and no other files",
          "[unit][image]") {
    const Scratch data;
    CHECK(imageStock(data / "absent").images == 0);
    write(data / "images/python/index.json", "{}");
    write(data / "images/python/blobs/sha256/aa", "12345678");
    write(data / "images/shell/index.json", "{ }");
    write(data / "images/.shell.import/index.json", "on its way");
    write(data / "images/half/blobs/sha256/bb", "half-copied");
    write(data / "rootfs/aa/etc/passwd", "unpacked");
    const ImageStock stock = imageStock(data.path());
    CHECK(stock.images == 2);
    CHECK(stock.bytes == 13);
}
