#pragma once

#include "api/rest/schema/Schema.h"

namespace hearth::rest {

// The shapes of the JSON that Views writes. The unit tests check every answer against them.

Schema workspaceSchema();
Schema executionSchema();
/// A value, figure or table that code has displayed.
Schema resultSchema();
/// The uncaught exception of code.
Schema executionErrorSchema();
Schema contextSchema();
Schema poolSchema();
Schema sandboxSchema();
Schema eventSchema();
Schema tokenSchema();
/// A token in the one answer that also has the token itself.
Schema newTokenSchema();
Schema usageSchema();
Schema egressSchema();
Schema packagesSchema();
Schema fileEntrySchema();
Schema problemSchema();
/// `{"ended": 3}`.
Schema endedSchema();
/// A page of `item`, named `name` in the document.
Schema listSchema(Schema item, std::string name);
Schema workspaceListSchema();

}  // namespace hearth::rest
