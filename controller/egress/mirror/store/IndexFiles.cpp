#include "controller/egress/mirror/store/IndexFiles.h"

#include "controller/egress/policy/Refused.h"

namespace hearth::egress {

void refuseUnknown(const std::string& what) {
    throw Refused(kNotFound, "not_found", what);
}

FileCache::Found IndexFiles::open(const IndexFile& file, const std::string& tenant) const {
    return cache_.open(file.hash, tenant, [this, file](const FileCache::Sink& sink) {
        int status = kNotFound;
        for (const std::string& url : file.urls) {
            status =
                fetcher_
                    .get(
                        {url, {}, file.most},
                        [&](const FetchAnswer& begun) { sink.begun(begun.length); }, sink.bytes)
                    .status;
            if (status != kNotFound) break;
        }
        if (status == 200) return;
        throw Refused(kBadGateway, "index_failed",
                      "the index answers " + std::to_string(status) + " for the file");
    });
}

std::optional<std::uint64_t> IndexFiles::sizeOf(const IndexFile& file) const {
    if (const auto stored = cache_.sizeOf(file.hash)) return stored;
    if (file.size) return file.size;
    for (const std::string& url : file.urls) {
        const FetchAnswer there = fetcher_.text({url, {}, 0, true}).first;
        if (there.status == 200) return there.length;
    }
    return std::nullopt;
}

void IndexFiles::answer(const MirrorRequest& asked, const IndexFile& file,
                        MirrorAnswer& answer) const {
    answer.content_type = "application/octet-stream";
    if (asked.head.method == "HEAD") {  // the index lists it, so it exists
        answer.size = sizeOf(file);
        answer.result = "hit";
    } else {
        FileCache::Found found = open(file, asked.tenant);
        answer.file = std::move(found.file);
        answer.result = found.hit ? "hit" : "miss";
    }
    answer.etag = '"' + file.hash.key() + '"';
}

}  // namespace hearth::egress
