#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/Error.h"
#include "base/Json.h"
#include "pool/image/ImageStore.h"
#include "pool/spec/SandboxSpec.h"

/// The messages of the server and its launcher: one JSON object per packet. The launcher is root
/// and trusts nothing in a request; every field has its own bounds and unknown ones are refused.
namespace hearth::pool::launcher {

/// The longest packet: a page of a sweep that keeps some thousands of sandboxes.
inline constexpr std::size_t kMaxPacket = 256U << 10U;

struct CreateRequest {
    SandboxId id;
    SandboxSpec spec;
};
struct DestroyRequest {
    SandboxId id;
};
/// Limits a sandbox to less than it was made with; no message can give it more again.
struct NarrowRequest {
    SandboxId id;
    std::uint32_t milli_cpu = 0;
    std::uint64_t memory_bytes = 0;
    std::uint32_t pids = 0;
};
/// Asks for one sandbox, as a list would show it.
struct FindRequest {
    SandboxId id;
};
/// Asks for one page of existing sandboxes: ids after `after`.
struct ListRequest {
    std::string after;
    bool count_files = false;  ///< counts their open files, which costs much more
};
/// Asks for one page of a sweep: ids after `after`, up to `until` (empty: to the end).
struct SweepRequest {
    std::vector<SandboxId> keep;
    std::string after = {};
    std::string until = {};
};
/// The most ids of one such page, so that it fits into a packet.
inline constexpr std::size_t kMostKept = 5000;
/// The most leftovers that one page lists one by one.
inline constexpr std::size_t kMostLeftovers = 200;
struct PrepareImageRequest {
    std::string name;
};
/// Asks for an image's identity, without unpacking it.
struct DescribeImageRequest {
    std::string name;
};
/// Brings an image from its registry for a claim. Sent with the socket of the server's gateway.
struct FetchImageRequest {
    std::string reference;
    bool insecure = false;
    std::uint64_t limit_s = 900;
};
/// Forgets images that claims brought and that no name in `wanted` means.
struct ForgetImagesRequest {
    std::vector<std::string> wanted;
};
/// Sent with the file that holds the layer's archive.
struct AddLayerRequest {
    std::string digest;
};
struct RemoveLayerRequest {
    std::string digest;
};
struct FactsRequest {};

using RequestBody =
    std::variant<CreateRequest, DestroyRequest, NarrowRequest, FindRequest, ListRequest,
                 SweepRequest, PrepareImageRequest, DescribeImageRequest, FetchImageRequest,
                 ForgetImagesRequest, AddLayerRequest, RemoveLayerRequest, FactsRequest>;
struct Request {
    std::uint64_t seq = 0;
    RequestBody body;
};

/// A request that breaks a rule. `seq` is the number for its answer, 0 if not even that was
/// readable.
class BadRequest : public Error {
public:
    BadRequest(std::uint64_t seq, const std::string& message)
        : Error(ErrorCode::InvalidArgument, message), seq_(seq) {}
    std::uint64_t seq() const noexcept { return seq_; }

private:
    std::uint64_t seq_;
};

std::string encodeRequest(const Request& request);
/// Throws BadRequest.
Request decodeRequest(std::string_view packet);

/// One sandbox of a list.
struct Found {
    SandboxId id;
    bool alive = false;
    std::map<std::string, std::string> labels;
    std::int64_t created_unix_ms = 0;
    std::uint64_t open_files = 0;  ///< if they were counted
};

/// An answer. `error` empty: success, and `result` has the outcome (an object, by request); else
/// the wire name of an error code, or "INTERNAL" for errors that no client may see.
struct Reply {
    std::uint64_t seq = 0;
    Json result = Json::object();
    std::string error;
    std::string message;
    std::string hint;
};

/// The first packet of a launcher has this number and contains its process id.
inline constexpr std::uint64_t kReadySeq = 0;

std::string encodeReply(const Reply& reply);
/// Throws Error(InvalidArgument) on a packet that no launcher sends.
Reply decodeReply(std::string_view packet);

/// Makes the failure of an operation an answer to `seq`: an Error keeps code and hint, a full disk
/// is DiskFull, anything else is "INTERNAL".
Reply failureReply(std::uint64_t seq, const std::exception& failure);
/// Throws the failure again on the other side; does nothing if there is none.
void throwFailure(const Reply& reply);

/// Leaves out the origin and time of the image: these stay in the store.
Json encodeImage(const image::Image& image);
image::Image decodeImage(const Json& json);

/// The result of a fetch.
struct Fetched {
    image::Image image;
    std::uint64_t pull_ms = 0;
    std::uint64_t unpack_ms = 0;
};
Json encodeFetched(const Fetched& fetched);
Fetched decodeFetched(const Json& json);

/// The result of a narrowing: an empty object if the limits are in force.
Json encodeInUse(const std::optional<LimitInUse>& in_use);
std::optional<LimitInUse> decodeInUse(const Json& json);

/// Returns the part of `present` that this page removes: neither kept nor `born` since.
std::set<SandboxId> goneOf(const SweepRequest& sweep, const std::set<SandboxId>& present,
                           const std::set<SandboxId>& born);
/// Encodes the things that a sweep could not remove; at most kMostLeftovers are listed.
Json encodeLeftovers(const std::vector<Leftover>& leftovers);
std::vector<Leftover> decodeLeftovers(const Json& json);

Json encodeFound(const Found& found);
Found decodeFound(const Json& json);

}  // namespace hearth::pool::launcher
