// For a program without libbrotlidec.
#include "ingest/unpacker.h"

namespace watchdog::monitor {

std::unique_ptr<Unpacker> brotli_unpacker() {
  return nullptr;
}

}  // namespace watchdog::monitor
