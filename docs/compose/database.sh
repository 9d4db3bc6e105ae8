# PostgreSQL in the folder $DATA, whose contents are made at the first start, with the database `rootlight` of the user of that
# name and the password $PASSWORD.
set -eu
main=$DATA/main
if ! test -d "$main"; then
    # A start that was interrupted leaves only the other folder.
    rm -rf "$DATA/new"
    umask 077
    echo "$PASSWORD" > "$DATA/password"
    initdb --pgdata="$DATA/new" --username=rootlight --pwfile="$DATA/password" --auth=scram-sha-256 --encoding=UTF8 --locale=C
    rm "$DATA/password"
    echo "host all all all scram-sha-256" >> "$DATA/new/pg_hba.conf"
    echo "CREATE DATABASE rootlight" | postgres --single -D "$DATA/new" postgres
    mv "$DATA/new" "$main"
fi
unset PASSWORD
exec postgres -D "$main" -c "listen_addresses=${LISTEN:-*}" -c "unix_socket_directories=${SOCKETS:-/tmp}"
