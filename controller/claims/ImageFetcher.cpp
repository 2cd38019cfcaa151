#include "controller/claims/ImageFetcher.h"

#include <algorithm>

#include "base/Error.h"
#include "pool/image/Reference.h"

namespace hearth::controller {
namespace {

[[noreturn]] void explainRefusal(const std::string& image, const egress::Refused& why) {
    if (why.status() != egress::kForbidden) {
        throw Error(ErrorCode::Unavailable,
                    "the registry of \"" + image + "\" cannot be reached: " + why.what())
            .hint("check the name, and that this machine can reach its registry");
    }
    throw Error(ErrorCode::InvalidSpec, "image \"" + image + "\" is not fetched: " + why.what())
        .hint("an operator can allow the address of an internal registry with egress.exempt");
}

/// Returns whether the failure may follow from the gateway's refusal.
bool mayFollow(const Error& failure, const egress::Refused& why) {
    return failure.code() == ErrorCode::InvalidArgument ||
           failure.code() == ErrorCode::Unavailable ||
           (failure.code() == ErrorCode::NotFound && why.status() == egress::kForbidden);
}

}  // namespace

pool::KnownImage ImageFetcher::fetch(const std::string& image, pool::ImageStages& stages) {
    const std::string registry =
        pool::image::registryOf(pool::image::parseReference(image).value().repository);
    std::unique_ptr<egress::ImageWay> way;
    try {
        way = gateway_.open(image, registry);
    } catch (const egress::Refused& e) {
        log_.warn("image.refused", {{"image", image}, {"why", e.reason()}});
        explainRefusal(image, e);
    }
    pool::ImageFetch fetch{image};
    fetch.insecure = std::find(insecure_.begin(), insecure_.end(), registry) != insecure_.end();
    fetch.gateway = way->socket();
    log_.info("image.fetching", {{"image", image}});
    try {
        pool::KnownImage known = runtime_.fetchImage(fetch, stages);
        log_.info("image.fetched", {{"image", image},
                                    {"digest", known.digest},
                                    {"seconds", toSeconds(stages.pull + stages.unpack)}});
        events_.publish({.type = "image.fetched",
                         .resource = known.digest,
                         .reason = "claimed",
                         .message = "image " + image + " was fetched for a claim"});
        return known;
    } catch (const Error& e) {
        const std::optional<egress::Refused> refused = way->refused();
        if (refused && mayFollow(e, *refused)) explainRefusal(image, *refused);
        throw;
    }
}

}  // namespace hearth::controller
