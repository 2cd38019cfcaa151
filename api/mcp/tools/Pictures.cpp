#include "api/mcp/tools/Pictures.h"

#include <algorithm>
#include <utility>

#include "api/mcp/tools/Content.h"
#include "controller/contract/RichResults.h"

namespace hearth::mcp {
namespace {

/// The sizes of one result's picture, the largest first.
struct Sizes {
    std::size_t result = 0;
    std::vector<Picture> pictures;
};

Sizes sizesOf(std::size_t number, Json mime, std::map<std::string, int>& left_out) {
    Sizes sizes{number, {}};
    for (auto& [type, value] : mime.items()) {
        if (type == "image/png" || type == "image/jpeg") {
            sizes.pictures.push_back({type, std::move(value.get_ref<std::string&>())});
        } else if (controller::isBinaryType(type)) {
            ++left_out[type];
        }
    }
    std::sort(sizes.pictures.begin(), sizes.pictures.end(),
              [](const Picture& a, const Picture& b) { return a.base64.size() > b.base64.size(); });
    return sizes;
}

}  // namespace

ShownPictures picturesOf(const controller::ExecutionView& view, std::size_t room) {
    ShownPictures shown;
    std::vector<Sizes> all;
    std::size_t largest = 0;
    for (std::size_t i = 0; i < view.results.size(); ++i) {
        Sizes sizes = sizesOf(i, view.results[i]->mime(), shown.left_out);
        if (sizes.pictures.empty()) continue;
        if (all.size() == kImagesCap) {
            ++shown.left_out[sizes.pictures.front().type];
            continue;
        }
        largest += sizes.pictures.front().base64.size();
        all.push_back(std::move(sizes));
    }
    const bool all_fit = largest <= room;
    for (Sizes& sizes : all) {
        Picture& chosen = all_fit ? sizes.pictures.front() : sizes.pictures.back();
        if (chosen.base64.size() > room) {
            ++shown.left_out[chosen.type];
            continue;
        }
        room -= chosen.base64.size();
        shown.of_result.emplace(sizes.result, std::move(chosen));
    }
    return shown;
}

}  // namespace hearth::mcp
