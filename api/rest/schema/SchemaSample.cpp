#include "api/rest/schema/Schema.h"

namespace hearth::rest {

Json Schema::sample(bool whole) const {
    if (!examples_.empty()) return examples_.front();
    if (fallback_) return *fallback_;
    switch (kind_) {
        case Kind::Any:
            return nullptr;
        case Kind::Object: {
            Json out = Json::object();
            for (const Field& field : fields_) {
                if (whole || field.needed) out[field.name] = field.schema->sample(whole);
            }
            // Among fields that exclude each other, the first one is shown.
            for (std::size_t i = 0; i < exactly_one_.size(); ++i) {
                const std::string& name = exactly_one_[i];
                if (i == 0) out[name] = field(name)->schema->sample(whole);
                if (i > 0) out.erase(name);
            }
            return out;
        }
        case Kind::Array:
            return least_size_.value_or(0) == 0 && !whole ? Json::array()
                                                          : Json::array({items_->sample(whole)});
        case Kind::Map:
            return Json::object(
                {{format_ != nullptr && !format_->sample.empty() ? std::string(format_->sample)
                                                                 : std::string("key"),
                  items_->sample(whole)}});
        case Kind::String:
            if (!values_.empty()) return values_.front();
            if (format_ != nullptr && !format_->sample.empty()) return std::string(format_->sample);
            return nullable_ ? Json(nullptr) : Json(std::string(least_size_.value_or(0), 'x'));
        case Kind::Integer:
            return static_cast<std::int64_t>(least_.value_or(0));
        case Kind::Number:
            return least_.value_or(0);
        case Kind::Boolean:
            return false;
    }
    return nullptr;
}

}  // namespace hearth::rest
