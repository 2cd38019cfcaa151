#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/Error.h"
#include "base/Json.h"

/// The parts of every object's status: conditions, and events about their changes. They follow
/// Kubernetes' API conventions and kstatus' use of Stalled.
namespace hearth::kubernetes {

/// The reason why an object is not in force.
struct Refusal {
    std::string reason;  ///< "InvalidSpec", "Ending", "Failed"
    std::string message;
    bool wrong = false;  ///< it stays so until the object is changed
};
/// `busy`: the reason for a conflict with existing things.
Refusal refusalOf(const Error& error, const char* busy);

/// Returns metadata.generation, which the API server raises with each change of the spec.
std::int64_t generationOf(const Json& object);

/// Returns the condition of this type; null if the status has none.
const Json* conditionOf(const Json& status, std::string_view type);

/// Returns a condition as of `now`.
Json condition(std::string_view type, bool holds, const Refusal& why, const std::string& now);

/// Sets the generation of each condition. Keeps the time of a condition whose status is the same in
/// the object.
void completeConditions(Json& conditions, const Json& object, const std::string& now);

/// Returns a merge patch of the object's status: removes the fields that `status` does not have.
Json statusPatch(const Json& object, const Json& status);

/// Returns an Event (core/v1) about the object.
Json eventAbout(const Json& object, bool warning, const Refusal& why, const std::string& time);

/// Returns events for the changes in `now`: conditions that became true or false, or have another
/// reason. Ready and Progressing are left out: they change with every burst of claims.
std::vector<Json> eventsOf(const Json& object, const Json& before, const Json& now,
                           const std::string& time);

}  // namespace hearth::kubernetes
