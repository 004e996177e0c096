/// \file
/// The certificate and key of a server.
#pragma once

#include <boost/asio/ssl/context.hpp>

#include "http/server.h"
#include "watchdog/result.h"

namespace watchdog::monitor {

/// Gives a context the server's certificate and key, and TLS 1.2 as its oldest version. Errors:
/// `invalid`, with the file that cannot be used.
[[nodiscard]] Result<void> use_files(boost::asio::ssl::context& context, const TlsFiles& files);

}  // namespace watchdog::monitor
