/// \file
/// Where the certificates of the system's authorities are.
#pragma once

namespace watchdog::monitor {

/// Makes OpenSSL find the system's certificates. A static program has the paths of the system on
/// which it was built, and other distributions use other paths. Sets SSL_CERT_FILE, unless the
/// environment or OpenSSL's own paths name certificates. Call it before the first thread starts.
void find_certificates();

}  // namespace watchdog::monitor
