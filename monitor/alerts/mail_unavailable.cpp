// The static program has this instead of mail.cpp: Debian's libcurl needs libraries that have no
// static form.
#include "alerts/mail.h"

namespace watchdog::monitor {

SendResult send_mail(const Mail& /*mail*/, const std::stop_token& /*stop*/) {
  return {.kind = SendResult::Kind::failed,
          .answer =
              "the static program cannot send e-mail; use the Debian package, or a channel "
              "of type command"};
}

}  // namespace watchdog::monitor
