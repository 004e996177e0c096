# Moves files that CMake installed to where Debian has them, and adds what every Debian package holds.
set(debian ${CPACK_WATCHDOG_SOURCE}/packaging/debian)
file(MAKE_DIRECTORY ${share}/zsh/vendor-completions ${share}/lintian/overrides)
file(RENAME ${share}/zsh/site-functions/_watchdog-monitor ${share}/zsh/vendor-completions/_watchdog-monitor)
file(REMOVE_RECURSE ${share}/zsh/site-functions)
configure_file(${debian}/lintian-overrides ${share}/lintian/overrides/watchdog-monitor COPYONLY NO_SOURCE_PERMISSIONS)

string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)  # of SOURCE_DATE_EPOCH, if it is set
foreach(component monitor lib dev)
  string(TOUPPER ${component} upper)
  set(doc ${CPACK_TEMPORARY_DIRECTORY}/${component}/usr/share/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  configure_file(${debian}/copyright ${doc}/copyright COPYONLY NO_SOURCE_PERMISSIONS)
  configure_file(${CPACK_WATCHDOG_SOURCE}/CHANGELOG.md ${doc}/changelog COPYONLY NO_SOURCE_PERMISSIONS)
  file(WRITE ${doc}/changelog.Debian
    "watchdog-monitor (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) stable; urgency=medium\n\n"
    "  * New version. The file changelog.gz has the changes.\n\n"
    " -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  compress(${doc}/changelog)
  compress(${doc}/changelog.Debian)
endforeach()
