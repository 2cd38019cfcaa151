#include "controller/broker/credentials/Masker.h"

#include <algorithm>
#include <utility>

namespace hearth::broker {
namespace {

/// How much of the end of `bytes` may be the beginning of `secret`.
std::size_t begun(std::string_view bytes, std::string_view secret) {
    for (std::size_t n = std::min(bytes.size(), secret.size() - 1); n > 0; --n) {
        if (bytes.ends_with(secret.substr(0, n))) return n;
    }
    return 0;
}

}  // namespace

std::string Masker::take(std::string_view bytes, bool last) {
    // Looked for in what came, since one secret may begin within another.
    std::string came = std::exchange(kept_, {});
    std::string out = std::exchange(masked_, {});
    came.append(bytes);
    out.append(bytes);
    std::size_t keep = 0;
    for (const std::string& secret : hidden_) {
        std::size_t done = 0;
        for (std::size_t at = came.find(secret); at != std::string::npos;
             at = came.find(secret, at + 1)) {
            const std::size_t end = at + secret.size();
            for (std::size_t i = std::max(at, done); i < end; ++i) out[i] = '*';
            done = end;
        }
        if (!last) keep = std::max(keep, begun(came, secret));
    }
    kept_ = came.substr(came.size() - keep);
    masked_ = out.substr(out.size() - keep);
    out.resize(out.size() - keep);
    return out;
}

}  // namespace hearth::broker
