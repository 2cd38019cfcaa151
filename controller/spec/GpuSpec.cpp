#include "controller/spec/GpuSpec.h"

#include <algorithm>

namespace hearth::controller {
namespace {

bool isWordPart(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

char lowered(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

bool hasWords(const std::string& whole, const std::string& text) {
    if (text.empty()) return false;
    const auto same = [](char a, char b) { return lowered(a) == lowered(b); };
    auto from = whole.begin();
    while (true) {
        const auto at = std::search(from, whole.end(), text.begin(), text.end(), same);
        if (at == whole.end()) return false;
        const auto behind = at + static_cast<std::ptrdiff_t>(text.size());
        const bool begins = at == whole.begin() || !isWordPart(at[-1]) || !isWordPart(text.front());
        const bool ends = behind == whole.end() || !isWordPart(*behind) || !isWordPart(text.back());
        if (begins && ends) return true;
        from = at + 1;
    }
}

bool matches(const GpuSpec& spec, const GpuWish& wish) {
    if (spec.count != wish.count) return false;
    if (wish.product.empty()) return true;
    return !spec.products.empty() &&
           std::all_of(spec.products.begin(), spec.products.end(),
                       [&](const std::string& one) { return hasWords(one, wish.product); });
}

}  // namespace hearth::controller
