#pragma once

#include "api/rest/schema/Schema.h"

namespace hearth::rest {

// The shapes of what Views writes. The unit tests hold every answer against them.

Schema workspaceSchema();
Schema executionSchema();
/// A value, figure or table that code has shown.
Schema resultSchema();
/// The uncaught exception of code.
Schema executionErrorSchema();
Schema contextSchema();
Schema poolSchema();
Schema sandboxSchema();
Schema eventSchema();
Schema tokenSchema();
/// A token as it is answered once, with the token itself.
Schema newTokenSchema();
Schema usageSchema();
Schema egressSchema();
Schema packagesSchema();
Schema fileEntrySchema();
Schema problemSchema();
/// `{"ended": 3}`.
Schema endedSchema();
/// A page of `item`, standing in the document as `name`.
Schema listSchema(Schema item, std::string name);
Schema workspaceListSchema();

}  // namespace hearth::rest
