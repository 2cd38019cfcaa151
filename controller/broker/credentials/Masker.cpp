#include "controller/broker/credentials/Masker.h"

#include <algorithm>
#include <utility>

namespace hearth::broker {
namespace {

bool isPrintable(char c) {
    return c >= 0x20 && c <= 0x7E;
}

}  // namespace

Masker::Masker(std::vector<std::string> hidden) : hidden_(std::move(hidden)) {
    for (const std::string& secret : hidden_) longest_ = std::max(longest_, secret.size());
}

std::string Masker::take(std::string_view bytes, bool last) {
    // Looked for in what came, since one secret may begin within another.
    std::string came = std::exchange(kept_, {});
    std::string out = std::exchange(masked_, {});
    const std::size_t before = came.size();
    came.append(bytes);
    out.append(bytes);
    for (const std::string& secret : hidden_) {
        // One that ends within what was kept was found when that came.
        std::size_t done = 0;
        for (std::size_t at =
                 came.find(secret, before < secret.size() ? 0 : before + 1 - secret.size());
             at != std::string::npos; at = came.find(secret, at + 1)) {
            const std::size_t end = at + secret.size();
            for (std::size_t i = std::max(at, done); i < end; ++i) out[i] = '*';
            done = end;
        }
    }
    std::size_t keep = 0;
    while (!last && keep < came.size() && keep + 1 < longest_ &&
           isPrintable(came[came.size() - 1 - keep])) {
        ++keep;
    }
    kept_ = came.substr(came.size() - keep);
    masked_ = out.substr(out.size() - keep);
    out.resize(out.size() - keep);
    return out;
}

}  // namespace hearth::broker
