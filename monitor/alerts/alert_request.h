/// \file
/// The request that carries a message to a webhook.
#pragma once

#include "alerts/alert_body.h"
#include "net/web_request.h"

namespace watchdog::monitor {

/// Method, URL, headers and body as the channel's format documents them. REQUIRES: a channel of
/// type webhook, whose settings and secrets were checked. Thread-safe.
[[nodiscard]] WebRequest alert_request(const AlertMessage& message, const AlertChannel& channel,
                                       const ChannelSecrets& secrets, const AlertWording& wording);

/// Returns the pause that the answer asks for, by its header or by a member of its body
/// (`retry_after` in seconds, `retry_after_ms`, the first also in `parameters`). Thread-safe.
[[nodiscard]] std::optional<Millis> pause_of(const WebAnswer& answer);

}  // namespace watchdog::monitor
