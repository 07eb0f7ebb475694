# One image for the controller, the emulator and the command line: docs/deployment.md
# It has been checked by hadolint, and not been built yet: please report problems.

FROM python:3.11.7-slim-bookworm AS build
WORKDIR /source
RUN python -m venv /opt/trainyard
# These change seldom; what they bring is large.
COPY pyproject.toml requirements.txt ./
COPY hostlib/pyproject.toml hostlib/
COPY deploy/docker/dependencies.py deploy/docker/
RUN python deploy/docker/dependencies.py > dependencies.txt \
    && /opt/trainyard/bin/pip install --no-cache-dir --constraint requirements.txt --requirement dependencies.txt
COPY . .
RUN /opt/trainyard/bin/pip install --no-cache-dir --constraint requirements.txt ./hostlib .

FROM python:3.11.7-slim-bookworm
COPY --from=build /opt/trainyard /opt/trainyard
COPY deploy/docker/healthy.py /usr/local/bin/healthy
RUN useradd --system --uid 4790 --user-group --create-home --home-dir /var/lib/trainyard trainyard \
    && install --directory --owner trainyard --mode 0700 /credentials /cache \
        /for/controller /for/emulator /for/job /for/operator /for/prometheus
ENV PATH=/opt/trainyard/bin:$PATH
ENV PYTHONFAULTHANDLER=1
ENV TRAINYARD_CACHE=/cache
ENV NUMBA_CACHE_DIR=/cache/numba
USER 4790:4790
WORKDIR /var/lib/trainyard
EXPOSE 4790 4791
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["python", "/usr/local/bin/healthy", "4791/healthz"]
ENTRYPOINT ["trainyard"]
CMD ["controller", "--config", "/etc/trainyard/controller.yaml"]
