#include "pool/launcher/protocol/OperationRules.h"

namespace hearth::pool::launcher {
namespace {

using std::chrono::seconds;

constexpr std::size_t kCreates = 6;
constexpr std::size_t kDestroys = 5;
constexpr std::size_t kNarrows = 4;
constexpr std::size_t kLooks = 4;
constexpr std::size_t kImages = 6;  // one of each of its kinds
/// Includes killed ones that do not end: such a machine is sick, and more would not help.
constexpr std::size_t kMostProcesses = 64;
// A registry may be slow, and unpacking comes after the fetch.
constexpr auto kUnpack = seconds(660);

struct RulesOf {
    OperationRules operator()(const CreateRequest& r) const {
        // After a failure its remains are destroyed before its answer.
        return {"create", Slot::Create, seconds(60), seconds(120), r.id, false, true};
    }
    OperationRules operator()(const DestroyRequest& r) const {
        return {"destroy", Slot::Destroy, seconds(30), seconds(60), r.id, false, true};
    }
    OperationRules operator()(const NarrowRequest& r) const {
        return {"narrow", Slot::Narrow, seconds(10), seconds(15), r.id};
    }
    OperationRules operator()(const FindRequest& r) const {
        return {"find", Slot::Look, seconds(30), seconds(60), r.id};
    }
    OperationRules operator()(const ListRequest& r) const {
        return {"list", Slot::Look, seconds(30), seconds(60), r.after};
    }
    OperationRules operator()(const SweepRequest&) const {
        return {"sweep", Slot::Image, seconds(300), seconds(630), "", true};
    }
    OperationRules operator()(const PrepareImageRequest& r) const {
        return {"prepareImage", Slot::Image, seconds(600), seconds(1230), r.name, true};
    }
    OperationRules operator()(const DescribeImageRequest& r) const {
        return {"describeImage", Slot::Look, seconds(30), seconds(60), r.name};
    }
    OperationRules operator()(const FetchImageRequest& r) const {
        const auto limit = seconds(r.limit_s) + kUnpack;
        return {"fetchImage", Slot::Image, limit, 2 * limit + seconds(30), r.reference, true};
    }
    OperationRules operator()(const ForgetImagesRequest&) const {
        return {"forgetImages", Slot::Image, seconds(120), seconds(300), "", true};
    }
    OperationRules operator()(const AddLayerRequest& r) const {
        return {"addLayer", Slot::Image, seconds(600), seconds(1230), r.digest, true};
    }
    OperationRules operator()(const RemoveLayerRequest& r) const {
        return {"removeLayer", Slot::Image, seconds(120), seconds(300), r.digest, true};
    }
    OperationRules operator()(const FactsRequest&) const {
        return {"facts", Slot::Look, seconds(30), seconds(60), ""};
    }
};

struct SandboxOf {
    const SandboxId* operator()(const CreateRequest& r) const { return &r.id; }
    const SandboxId* operator()(const DestroyRequest& r) const { return &r.id; }
    const SandboxId* operator()(const NarrowRequest& r) const { return &r.id; }
    template <typename Other>
    const SandboxId* operator()(const Other&) const {
        return nullptr;
    }
};

}  // namespace

std::size_t places(Slot slot) {
    switch (slot) {
        case Slot::Create:
            return kCreates;
        case Slot::Destroy:
            return kDestroys;
        case Slot::Narrow:
            return kNarrows;
        case Slot::Look:
            return kLooks;
        case Slot::Image:
            return kImages;
    }
    return 1;
}

OperationRules rulesOf(const RequestBody& body) {
    return std::visit(RulesOf{}, body);
}

const SandboxId* sandboxOf(const RequestBody& body) {
    return std::visit(SandboxOf{}, body);
}

bool mayStart(const RequestBody& body, const std::vector<Underway>& underway,
              std::size_t yielding) {
    if (underway.size() >= kMostProcesses) return false;
    const OperationRules rules = rulesOf(body);
    const SandboxId* id = sandboxOf(body);
    std::size_t taken = 0;
    std::size_t others_yield = 0;
    for (const Underway& other : underway) {
        const SandboxId* busy = sandboxOf(*other.body);
        if (id != nullptr && busy != nullptr && *id == *busy) return false;
        // A killed operation that does not end hangs in the kernel: others may take its place.
        if (other.killed) continue;
        if (other.yields) ++others_yield;
        if (rules.alone && other.body->index() == body.index()) return false;
        if (rulesOf(*other.body).slot == rules.slot) ++taken;
    }
    return taken < places(rules.slot) && others_yield < yielding;
}

std::vector<std::string> operationNames() {
    std::vector<std::string> names;
    for (const RequestBody& body : std::initializer_list<RequestBody>{
             CreateRequest{}, DestroyRequest{}, NarrowRequest{}, FindRequest{}, ListRequest{},
             SweepRequest{}, PrepareImageRequest{}, DescribeImageRequest{}, FetchImageRequest{},
             ForgetImagesRequest{}, AddLayerRequest{}, RemoveLayerRequest{}, FactsRequest{}}) {
        names.emplace_back(rulesOf(body).name);
    }
    return names;
}

}  // namespace hearth::pool::launcher
